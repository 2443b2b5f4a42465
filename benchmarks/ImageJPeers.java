import ij.ImagePlus;
import ij.ImageStack;
import inra.ijpb.measure.IntrinsicVolumes3D;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.function.DoubleSupplier;
import org.bonej.plugins.Connectivity;

/** Euler numbers of a binary volume by BoneJ and MorphoLibJ: name, value and best time in ms. */
public class ImageJPeers {
    public static void main(String[] arguments) throws Exception {
        byte[] points = Files.readAllBytes(Path.of(arguments[0]));
        int planes = Integer.parseInt(arguments[1]);
        int rows = Integer.parseInt(arguments[2]);
        int columns = Integer.parseInt(arguments[3]);
        ImageStack stack = new ImageStack(columns, rows);
        for (int z = 0; z < planes; z++) {
            byte[] plane = new byte[rows * columns];
            System.arraycopy(points, z * plane.length, plane, 0, plane.length);
            stack.addSlice("", plane);
        }
        Connectivity bone = new Connectivity();
        ImagePlus image = new ImagePlus("", stack);
        show("BoneJ", () -> bone.getSumEuler(image));
        show("BoneJ, corrected", () -> bone.getDeltaChi(image, bone.getSumEuler(image)));
        show("MorphoLibJ 6", () -> IntrinsicVolumes3D.eulerNumber(stack, 6));
        show("MorphoLibJ 26", () -> IntrinsicVolumes3D.eulerNumber(stack, 26));
    }

    static void show(String name, DoubleSupplier call) {
        double best = Double.POSITIVE_INFINITY, found = 0;
        for (int turn = 0; turn < 12; turn++) {
            long start = System.nanoTime();
            found = call.getAsDouble();
            best = Math.min(best, (System.nanoTime() - start) / 1e6);
        }
        System.out.println(name + "\t" + found + "\t" + best);
    }
}
