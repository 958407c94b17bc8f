import java.io.File;

/** Finds the last data file of a folder. */
public class Main {
    public static void main(String[] words) {
        String last = "";
        for (File file : new File(words[0]).listFiles()) {
            if (file.isFile() && file.getName().endsWith(".dat") && file.getName().compareTo(last) > 0) {
                last = file.getName();
            }
        }
        System.out.println("last " + last);
    }
}
